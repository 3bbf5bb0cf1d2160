//! The limit on workers over all clients. A process has one, so the clients that are counted run in a process of their
//! own.

use std::process::Command;
use std::sync::Arc;

use hepfs::h5::{Client, Options};
use hepfs::source::{Interrupt, Source};

use crate::data;

#[test]
fn no_more_workers_than_allowed_are_alive() {
    let mut clients = Command::new(std::env::current_exe().unwrap());
    let output = clients.args(["--ignored", "--exact", "h5_pool::five_clients_of_two_workers"]).output().unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success() && said.contains("1 passed"), "{said}");
}

/// No test by itself.
#[test]
#[ignore = "started by another test"]
fn five_clients_of_two_workers() {
    let path = data("h5_basic.h5");
    let program = env!("CARGO_BIN_EXE_hepfs").into();
    let options = Options { program, workers: 2, lists_simple: false, ..Options::default() };
    let clients: Vec<Client> =
        (0..5).map(|_| Client::new(Arc::new(Source::open(&path).unwrap()), options.clone())).collect();
    let root = clients[0].file(&Interrupt::new()).unwrap().root;
    std::thread::scope(|scope| {
        for client in &clients {
            scope.spawn(|| {
                for _ in 0..20 {
                    assert_eq!(client.group(root, &Interrupt::new()).unwrap().links.len(), 19);
                }
            });
        }
    });
    let alive = clients.iter().filter(|client| client.worker_id().is_some()).count();
    assert!((1..=2).contains(&alive), "{alive}");
}
