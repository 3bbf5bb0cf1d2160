//! The number of workers over all clients: alone in its process, for the number is the process's.

use std::path::Path;
use std::sync::Arc;

use hepfs::h5::{Client, Options};
use hepfs::source::{Interrupt, Source};

#[test]
fn no_more_workers_than_allowed_are_alive() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/h5_basic.h5");
    let options = Options { program: env!("CARGO_BIN_EXE_hepfs").into(), workers: 2, ..Options::default() };
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
