# Debian packages by CPack: tally, and tally-train where it is built. `cpack -G DEB` in the build directory.
set(CPACK_PACKAGE_NAME tally)
set(CPACK_PACKAGE_VERSION ${PROJECT_VERSION})
set(TALLY_MAINTAINER "The Tally developers <maintainers@tally.invalid>" CACHE STRING "Maintainer of the Debian packages")
set(CPACK_PACKAGE_CONTACT "${TALLY_MAINTAINER}")
set(CPACK_PACKAGE_VENDOR "The Tally developers")
set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
set(CPACK_GENERATOR DEB)
set(CPACK_DEB_COMPONENT_INSTALL ON)
set(CPACK_COMPONENTS_ALL tally)
if(TALLY_TRAIN)
  list(APPEND CPACK_COMPONENTS_ALL tally-train)
endif()
set(CPACK_STRIP_FILES ON)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_SECTION science)
set(CPACK_DEBIAN_PACKAGE_PRIORITY optional)
set(CPACK_DEBIAN_PACKAGE_CONTROL_STRICT_PERMISSION ON)
set(CPACK_DEBIAN_TALLY_PACKAGE_NAME tally)
if(TALLY_STATIC)  # of a static program there is nothing to depend on
  set(CPACK_DEBIAN_TALLY_PACKAGE_SHLIBDEPS OFF)
else()
  set(CPACK_DEBIAN_TALLY_PACKAGE_SHLIBDEPS ON)
endif()
if(CMAKE_CROSSCOMPILING AND CMAKE_SYSTEM_PROCESSOR STREQUAL "aarch64")
  set(CPACK_DEBIAN_PACKAGE_ARCHITECTURE arm64)
endif()
set(CPACK_DEBIAN_TALLY_PACKAGE_SUGGESTS "tally-train, slurm-client, librsvg2-2")
set(CPACK_COMPONENT_TALLY_DESCRIPTION "workflows of benchmarks on workstations and clusters
Reads a declarative file, expands its parameter space, runs every point here
or in jobs of a scheduler, reads what was printed and makes tables and charts.
It also reads the files of JUBE.")
set(CPACK_DEBIAN_TALLY-TRAIN_PACKAGE_NAME tally-train)
# LibTorch is in no package of Debian 12 that serves: the program /usr/bin/tally-train looks for it.
set(CPACK_DEBIAN_TALLY-TRAIN_PACKAGE_SHLIBDEPS OFF)
set(CPACK_DEBIAN_TALLY-TRAIN_PACKAGE_DEPENDS
  "libc6 (>= 2.36), libgcc-s1, libstdc++6 (>= 12), libfmt9, libicu72, libpcre2-8-0, libssl3, libxxhash0, zlib1g")
set(CPACK_DEBIAN_TALLY-TRAIN_PACKAGE_RECOMMENDS "tally, python3, libhdf5-103-1")
set(CPACK_DEBIAN_TALLY-TRAIN_PACKAGE_SUGGESTS "libopenmpi3")
set(CPACK_COMPONENT_TALLY-TRAIN_DESCRIPTION "training benchmark of language models
Trains GPT, Llama, BERT and DistilBERT models in C++ on LibTorch and says how
fast. It needs LibTorch 2.11, for example from PyPI's torch, at run time.")
configure_file(${CMAKE_SOURCE_DIR}/packaging/debian/stage.cmake.in ${CMAKE_BINARY_DIR}/debian-stage.cmake @ONLY)
set(CPACK_PRE_BUILD_SCRIPTS ${CMAKE_BINARY_DIR}/debian-stage.cmake)
include(CPack)
