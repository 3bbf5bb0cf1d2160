# A package for Spack, which builds hepfs from source. Untested: nobody has built it there yet, and the checksum of the
# release is wanted.
from spack.package import *
from spack_repo.builtin.build_systems.cargo import CargoPackage


class Hepfs(CargoPackage):
    """Mounts the column tables inside HDF5 files as directories of ordinary files."""

    homepage = "https://github.com/hepfs/hepfs"
    url = "https://github.com/hepfs/hepfs/archive/refs/tags/v0.1.0.tar.gz"
    git = "https://github.com/hepfs/hepfs.git"

    license("Apache-2.0")

    version("main", branch="main")

    depends_on("c", type="build")
    depends_on("rust@1.95:", type="build")
    depends_on("cmake@3.26:", type="build")
    depends_on("gmake", type="build")

    requires("platform=linux", msg="hepfs mounts by the FUSE of Linux")
