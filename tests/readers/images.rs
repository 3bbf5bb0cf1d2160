//! Images: Pillow finds in each `.png` the pixels that h5py reads.

use crate::script;
use crate::support::Mounted;

#[test]
fn pillow_reads_every_image_as_stored() {
    let folder = tempfile::tempdir().unwrap();
    let source = folder.path().join("images.h5");
    script("images", ["write".as_ref(), source.as_os_str()]).unwrap_or_else(|said| panic!("{said}"));
    let mounted = Mounted::new(&[&source], &[]);
    let read = script("images", ["read".as_ref(), source.as_os_str(), mounted.path().as_os_str()]);
    read.unwrap_or_else(|said| panic!("{said}\nerrors: {}", mounted.text(".hepfs/errors")));
}
