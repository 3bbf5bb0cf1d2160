//! Passes descriptors over a socket: from the daemon to a new worker, from `hepfs run` to its server.

use std::io;
use std::mem::MaybeUninit;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};
use std::os::unix::net::UnixStream;

/// Room for a few descriptors in a control message, aligned for `cmsghdr`.
#[repr(C, align(8))]
struct Control([u8; 64]);

/// A message of one byte with descriptors beside it; `vector`, its byte and `control` must outlive the header.
fn message(vector: &mut libc::iovec, control: &mut Control, length: usize) -> libc::msghdr {
    // SAFETY: all zeros is a valid header.
    let mut header: libc::msghdr = unsafe { MaybeUninit::zeroed().assume_init() };
    header.msg_iov = vector;
    header.msg_iovlen = 1;
    header.msg_control = control.0.as_mut_ptr().cast();
    header.msg_controllen = length;
    header
}

/// Sends descriptors beside one byte.
pub(crate) fn send(socket: &UnixStream, descriptors: &[RawFd]) -> io::Result<()> {
    let mut byte = 0u8;
    let mut vector = libc::iovec { iov_base: (&raw mut byte).cast(), iov_len: 1 };
    let mut control = Control([0; 64]);
    let payload = size_of_val(descriptors) as u32;
    // SAFETY: the control buffer is larger than CMSG_SPACE of three descriptors and lives through the call.
    let sent = unsafe {
        let header = message(&mut vector, &mut control, libc::CMSG_SPACE(payload) as usize);
        let first = libc::CMSG_FIRSTHDR(&header);
        (*first).cmsg_level = libc::SOL_SOCKET;
        (*first).cmsg_type = libc::SCM_RIGHTS;
        (*first).cmsg_len = libc::CMSG_LEN(payload) as usize;
        for (i, descriptor) in descriptors.iter().enumerate() {
            libc::CMSG_DATA(first).cast::<RawFd>().add(i).write_unaligned(*descriptor);
        }
        libc::sendmsg(socket.as_raw_fd(), &header, libc::MSG_NOSIGNAL)
    };
    if sent == 1 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// Receives the descriptors beside one byte. A worker gets those of the source, of the shared memory, and of a journal.
pub(crate) fn receive(socket: &UnixStream) -> io::Result<Vec<OwnedFd>> {
    let mut byte = 0u8;
    let mut vector = libc::iovec { iov_base: (&raw mut byte).cast(), iov_len: 1 };
    let mut control = Control([0; 64]);
    let mut descriptors = Vec::new();
    // SAFETY: the buffers live through the calls; a message of SCM_RIGHTS holds as many descriptors as its length says,
    // and each is ours from here on.
    unsafe {
        let mut header = message(&mut vector, &mut control, 64);
        if libc::recvmsg(socket.as_raw_fd(), &mut header, libc::MSG_CMSG_CLOEXEC) < 0 {
            return Err(io::Error::last_os_error());
        }
        let first = libc::CMSG_FIRSTHDR(&header);
        if !first.is_null() && (*first).cmsg_level == libc::SOL_SOCKET && (*first).cmsg_type == libc::SCM_RIGHTS {
            let length = (*first).cmsg_len.saturating_sub(libc::CMSG_LEN(0) as usize);
            let data = libc::CMSG_DATA(first).cast::<RawFd>();
            for i in 0..length / size_of::<RawFd>() {
                descriptors.push(OwnedFd::from_raw_fd(data.add(i).read_unaligned()));
            }
        }
    }
    Ok(descriptors)
}
