# Spack's recipe of Tally. From a checkout: `spack repo add packaging/spack`.
from spack.package import *


class Tally(CMakePackage, CudaPackage):
    """Workflows of benchmarks (tally), and a training benchmark of language models (tally-train)."""

    license("Apache-2.0")
    # There is no public archive yet: `spack dev-build tally@0.3.0` in a checkout.
    version("0.3.0")

    variant("train", default=False, description="Build tally-train; needs py-torch 2.11")
    variant("mpi", default=True, when="+train", description="Data parallel training on CPUs over MPI")

    depends_on("c", type="build")
    depends_on("cxx", type="build")
    depends_on("cmake@3.24:", type="build")
    depends_on("ninja", type="build")
    depends_on("cli11@2.1:", type="build")
    depends_on("nlohmann-json@3.11:", type="build")
    depends_on("spdlog@1.10:")
    depends_on("fmt@9.1")
    depends_on("yaml-cpp@0.7:")
    depends_on("pugixml@1.13:")
    depends_on("pcre2@10.42: +jit")
    depends_on("sqlite@3.20:")
    depends_on("xxhash@0.8:")

    with when("+train"):
        depends_on("py-torch@2.11", type=("build", "link", "run"))
        depends_on("hdf5@1.10.7: ~mpi")
        depends_on("icu4c")
        depends_on("openssl@3:")
        depends_on("zlib-api")
        depends_on("mpi", when="+mpi")
        depends_on("cuda@13", when="+cuda")
    conflicts("+cuda", when="~train", msg="tally alone has no GPU code")

    generator("ninja")

    def cmake_args(self):
        args = [
            self.define_from_variant("TALLY_TRAIN", "train"),
            self.define("TALLY_TESTS", False),
            self.define("TALLY_WERROR", False),
        ]
        if self.spec.satisfies("+train"):
            args.append(self.define("TALLY_SITE_PACKAGES", self.spec["py-torch"].package.module.python_platlib))
            args.append(self.define("TALLY_CUDA", "ON" if self.spec.satisfies("+cuda") else "OFF"))
            if self.spec.satisfies("+cuda"):
                args.append(self.define("TALLY_CUDA_ARCHITECTURES", self.spec.variants["cuda_arch"].value))
        return args

    @run_after("install")
    @on_package_attributes(run_tests=True)
    def check_install(self):
        Executable(self.prefix.bin.tally)("validate", self.prefix.share.tally.workflows.join("quickstart.yaml"))
