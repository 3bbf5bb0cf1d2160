//! Slow work, interrupted work, work that panics: the others must not notice.

use std::fs::{self, File};
use std::os::unix::process::ExitStatusExt;
use std::process::Child;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::sync::mpsc::channel;
use std::thread::available_parallelism;
use std::time::{Duration, Instant};

use hepfs::fs::NodeRef;
use hepfs::fs::mount::MountEnd;

use crate::mounted::Mounted;
use crate::programs::{LONG, end_of, must, run, signal, start, until, within};
use crate::toy::{Gate, GatedNames, LATER, Manner, directory, file};

fn slow_and_quick(manner: impl Fn(Arc<Gate>) -> Manner) -> (Mounted, Arc<Gate>) {
    let gate = Arc::new(Gate::default());
    let entries: [(&str, NodeRef); 4] = [
        ("slow", file("slow", manner(gate.clone()))),
        ("slow2", file("slow", manner(gate.clone()))),
        ("quick", file("quick", Manner::Plain)),
        ("counted", file("counted", Manner::Bound)),
    ];
    (Mounted::new(directory(entries)), gate)
}

#[test]
fn two_slow_opens_leave_the_mount_alive() {
    let (mounted, gate) = slow_and_quick(Manner::Gated);
    let mut readers = [start("cat", [mounted.path("slow")]), start("cat", [mounted.path("slow2")])];
    until("both wait", || gate.waiting.load(Ordering::SeqCst) == 2);
    assert_eq!(must("ls", [mounted.root()]), b"counted\nquick\nslow\nslow2\n");
    assert_eq!(must("cat", [mounted.path("quick")]), b"quick");
    assert_eq!(must("cat", [mounted.path("counted")]), b"counted");
    gate.open();
    for reader in &mut readers {
        assert!(end_of(reader, LONG).unwrap().success());
    }
}

#[test]
fn seventy_slow_opens_leave_quick_ones_alone() {
    let (mounted, gate) = slow_and_quick(Manner::Deaf);
    let mut readers: Vec<_> = (0..70).map(|_| start("cat", [mounted.path("slow")])).collect();
    until("all threads for slow work are busy", || gate.waiting.load(Ordering::SeqCst) == 64);
    assert_eq!(must("ls", [mounted.root()]), b"counted\nquick\nslow\nslow2\n");
    assert_eq!(must("cat", [mounted.path("quick")]), b"quick");
    assert!(must("ls", ["-l".into(), mounted.root()]).len() > 100);
    gate.open();
    for reader in &mut readers {
        assert!(end_of(reader, LONG).unwrap().success());
    }
}

#[test]
fn a_signal_ends_a_slow_open() {
    for (number, deaf) in [(libc::SIGINT, false), (libc::SIGKILL, false), (libc::SIGTERM, true), (libc::SIGKILL, true)]
    {
        // The promise is a second; a busy machine may need several attempts to show it.
        let took = (0..5).map(|_| time_to_end(number, deaf)).find(|took| *took < Duration::from_secs(1));
        assert!(took.is_some(), "signal {number} takes longer than a second");
    }
}

/// How long a reader that waits for an open lives on after a signal.
fn time_to_end(number: libc::c_int, deaf: bool) -> Duration {
    let (mounted, gate) = slow_and_quick(if deaf { Manner::Deaf } else { Manner::Gated });
    let mut reader = start("head", [mounted.path("slow")]);
    until("it waits", || gate.waiting.load(Ordering::SeqCst) == 1);
    let start = Instant::now();
    signal(reader.id(), number);
    let status = end_of(&mut reader, LONG).expect("still waits after the signal");
    let took = start.elapsed();
    assert_eq!(status.signal(), Some(number));
    if !deaf {
        until("the work stops", || gate.interrupted.load(Ordering::SeqCst) == 1);
    }
    assert_eq!(must("cat", [mounted.path("quick")]), b"quick");
    gate.open();
    assert_eq!(must("cat", [mounted.path("slow")]), b"slow");
    took
}

#[test]
fn a_signal_ends_a_slow_read() {
    let (mounted, gate) = slow_and_quick(Manner::GatedRead);
    let mut reader = start("cat", [mounted.path("slow")]);
    until("it waits", || gate.waiting.load(Ordering::SeqCst) >= 1);
    signal(reader.id(), libc::SIGINT);
    assert_eq!(end_of(&mut reader, LONG).unwrap().signal(), Some(libc::SIGINT));
    gate.open();
    assert_eq!(must("cat", [mounted.path("slow")]), b"slow");
}

#[test]
fn a_wait_without_signals_is_not_broken() {
    let (mounted, gate) = slow_and_quick(Manner::Gated);
    // Children come and go, and timers ring, while it waits.
    let script = "import signal, sys; signal.signal(signal.SIGALRM, lambda *_: None); \
                  signal.setitimer(signal.ITIMER_REAL, 0.05, 0.05); text = open(sys.argv[1]).read(); \
                  signal.setitimer(signal.ITIMER_REAL, 0); print(text)";
    let path = mounted.path("slow");
    let waits = std::thread::spawn(move || must("python3", ["-c".as_ref(), script.as_ref(), path.as_os_str()]));
    until("it waits", || gate.waiting.load(Ordering::SeqCst) == 1);
    std::thread::sleep(Duration::from_millis(700));
    assert_eq!(gate.interrupted.load(Ordering::SeqCst), 0);
    gate.open();
    assert_eq!(waits.join().unwrap(), b"slow\n");
}

#[test]
fn a_panic_answers_eio_and_the_mount_lives() {
    let mounted = Mounted::new(directory([
        ("open", file("x", Manner::PanicsOnOpen)),
        ("read", file("x", Manner::PanicsOnRead)),
        ("good", file("good", Manner::Plain)),
    ]));
    for _ in 0..5 {
        assert_eq!(File::open(mounted.path("open")).unwrap_err().raw_os_error(), Some(libc::EIO));
        assert_eq!(fs::read(mounted.path("read")).unwrap_err().raw_os_error(), Some(libc::EIO));
        let error = fs::metadata(mounted.path("panic-in-lookup")).unwrap_err();
        assert_eq!(error.raw_os_error(), Some(libc::EIO));
    }
    assert_eq!(fs::read(mounted.path("good")).unwrap(), b"good");
}

#[test]
fn a_panic_on_a_session_thread_answers_eio_too() {
    let mounted = Mounted::new(directory([
        ("bad", file("x", Manner::PanicsOnAttributes)),
        ("good", file("good", Manner::Plain)),
    ]));
    for _ in 0..5 {
        assert_eq!(fs::metadata(mounted.path("bad")).unwrap_err().raw_os_error(), Some(libc::EIO));
    }
    assert_eq!(fs::read(mounted.path("good")).unwrap(), b"good");
}

#[test]
fn a_mount_in_use_still_goes_away() {
    let (mut mounted, gate) = slow_and_quick(Manner::Deaf);
    let root = mounted.root();
    let mut reader = start("cat", [mounted.path("slow")]);
    until("it waits", || gate.waiting.load(Ordering::SeqCst) == 1);
    let mut sitter = std::process::Command::new("sleep").arg("1000").current_dir(&root).spawn().unwrap();
    let begin = Instant::now();
    let ended = mounted.take().unmount().unwrap();
    assert!(begin.elapsed() < Duration::from_secs(10));
    assert_eq!(ended, MountEnd::Detached);
    assert!(!crate::mounted::is_mounted(&root));
    // The waiting reader gets an error.
    assert_eq!(end_of(&mut reader, LONG).unwrap().code(), Some(1));
    sitter.kill().unwrap();
    sitter.wait().unwrap();
    gate.open();
    assert!(run("rmdir", [&root]).status.success());
}

/// A mount whose file `later` was quick in the hands of each of these readers, which now all wait for it.
fn quick_then_stuck(readers: u64) -> (Mounted, Arc<Gate>, Vec<Child>) {
    let gate = Arc::new(Gate::default());
    let bytes = vec![7; usize::try_from(LATER + (readers << 20)).unwrap()];
    let entries: [(&str, NodeRef); 2] =
        [("later", file(bytes, Manner::DeafLater(gate.clone()))), ("quick", file("quick", Manner::Plain))];
    let mounted = Mounted::new(directory(entries));
    // The second read is of a handle that has been quick. Each reads elsewhere: the kernel asks once for one page.
    let script = "import os, sys; file = os.open(sys.argv[1], os.O_RDONLY); os.pread(file, 1, int(sys.argv[2])); \
                  print(os.pread(file, 1, int(sys.argv[3])))";
    let path = mounted.path("later");
    let reader = |at: u64| {
        // Far enough from the place where it waits, whatever is read ahead.
        let (first, second) = (at % 32 * 65_536, LATER + (at << 20));
        let command = ["-c".into(), script.into(), path.as_os_str().to_owned()];
        start("python3", command.into_iter().chain([first, second].map(|offset| offset.to_string().into())))
    };
    let waiting: Vec<Child> = (0..readers).map(reader).collect();
    within(LONG, "all wait", || gate.waiting.load(Ordering::SeqCst) >= readers);
    (mounted, gate, waiting)
}

#[test]
fn reads_that_become_slow_leave_a_session_thread() {
    // More than there are session threads.
    let readers = available_parallelism().unwrap().get() as u64 + 4;
    let (mounted, gate, mut waiting) = quick_then_stuck(readers);
    assert_eq!(must("ls", [mounted.root()]), b"later\nquick\n");
    assert_eq!(must("cat", [mounted.path("quick")]), b"quick");
    signal(waiting[0].id(), libc::SIGINT);
    assert!(!end_of(&mut waiting[0], LONG).expect("still waits after the signal").success());
    gate.open();
    for reader in &mut waiting[1..] {
        assert!(end_of(reader, LONG).unwrap().success());
    }
}

#[test]
fn names_that_become_slow_leave_a_session_thread() {
    let gate = Arc::new(Gate::default());
    let entries: [(&str, NodeRef); 2] =
        [("names", Arc::new(GatedNames(gate.clone()))), ("quick", file("quick", Manner::Plain))];
    let mounted = Mounted::new(directory(entries));
    // From now on session threads look names up by themselves.
    assert_eq!(must("cat", [mounted.path("quick")]), b"quick");
    // More than there are session threads.
    let seekers = available_parallelism().unwrap().get() + 4;
    let mut waiting: Vec<Child> =
        (0..seekers).map(|name| start("stat", [mounted.path("names").join(name.to_string())])).collect();
    within(LONG, "all wait", || gate.waiting.load(Ordering::SeqCst) >= seekers as u64);
    assert_eq!(must("ls", [mounted.root()]), b"names\nquick\n");
    assert!(fs::metadata(mounted.path("missing")).is_err());
    assert_eq!(must("cat", [mounted.path("quick")]), b"quick");
    gate.open();
    for seeker in &mut waiting {
        assert_eq!(end_of(seeker, LONG).unwrap().code(), Some(1));
    }
}

#[test]
fn the_end_of_the_session_is_noticed_though_its_threads_are_busy() {
    let (mut mounted, gate, mut waiting) = quick_then_stuck(2);
    hepfs::fs::mount::unmount(&mounted.root(), true).unwrap();
    for reader in &mut waiting {
        signal(reader.id(), libc::SIGKILL);
        end_of(reader, LONG).expect("still waits after the signal");
    }
    let (mount, (sender, ended)) = (mounted.take(), channel());
    let waits = std::thread::spawn(move || sender.send(mount.wait()).ok());
    assert_eq!(ended.recv_timeout(LONG), Ok(MountEnd::Outside));
    waits.join().unwrap();
    gate.open();
}
