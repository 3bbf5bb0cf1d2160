//! Saves answers about files to the cache folder, in the background.

use std::sync::{Arc, OnceLock, Weak};
use std::time::{Duration, Instant};

use crossbeam_channel::{Sender, unbounded};

use super::File;

/// Delay between an answer and its saving, together with later ones.
const PAUSE: Duration = Duration::from_secs(1);

/// Least pause between saves, as a multiple of the time that the last one took.
const SELDOM: u32 = 10;

/// A thread that saves answers a moment after they came.
#[derive(Debug, Default)]
pub struct Saver(OnceLock<Option<Sender<Weak<File>>>>);

impl Saver {
    /// Schedules saving the answers about a file.
    pub fn tell(&self, file: &Arc<File>) {
        let sender = self.0.get_or_init(|| {
            let (sender, files) = unbounded::<Weak<File>>();
            let thread = std::thread::Builder::new().name("hepfs-catalogue".into()).spawn(move || {
                let mut pause = PAUSE;
                while let Ok(first) = files.recv() {
                    std::thread::sleep(pause);
                    let began = Instant::now();
                    for file in std::iter::once(first).chain(files.try_iter()) {
                        // A dropped file has saved its own answers.
                        if let Some(file) = file.upgrade() {
                            file.save_answers();
                        }
                    }
                    pause = PAUSE.max(began.elapsed() * SELDOM);
                }
            });
            thread.is_ok().then_some(sender)
        });
        if let Some(sender) = sender {
            let _ = sender.send(Arc::downgrade(file));
        }
    }
}
