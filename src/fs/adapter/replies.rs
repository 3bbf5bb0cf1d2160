//! Sends a failure through each kind of reply.

use fuser::{
    Errno, ReplyAttr, ReplyCreate, ReplyData, ReplyDirectory, ReplyDirectoryPlus, ReplyEmpty, ReplyEntry, ReplyIoctl,
    ReplyLseek, ReplyOpen, ReplyPoll, ReplyWrite, ReplyXattr,
};

use crate::fs::Error;
use crate::fs::pool::Reply;

macro_rules! answers {
    ($($reply:ty),*) => {$(
        impl Reply for $reply {
            fn fail(self, error: &Error) {
                error.log();
                // This calls the inherent method of the same reply.
                self.error(Errno::from_i32(error.errno()));
            }
        }
    )*};
}

answers!(
    ReplyAttr,
    ReplyCreate,
    ReplyData,
    ReplyDirectory,
    ReplyDirectoryPlus,
    ReplyEmpty,
    ReplyEntry,
    ReplyIoctl,
    ReplyLseek,
    ReplyOpen,
    ReplyPoll,
    ReplyWrite,
    ReplyXattr
);
