-- Module of an installed Tally, for Lmod. Copy it to MODULEPATH/tally/0.3.0.lua and change `base`, or leave it in
-- PREFIX/share/modulefiles/tally, where it finds the programs itself.
help([[
tally runs benchmark workflows; tally-train, where it was built, is a training benchmark of language models.
  tally validate FILE; tally run FILE -n; tally run FILE
]])
whatis("Name: tally")
whatis("Version: 0.3.0")
whatis("Description: workflows of benchmarks, and a training benchmark of language models")

local base = os.getenv("TALLY_PREFIX") or myFileName():gsub("/share/modulefiles/tally/[^/]*$", "")

prepend_path("PATH", pathJoin(base, "bin"))
prepend_path("MANPATH", pathJoin(base, "share/man") .. ":")
prepend_path("XDG_DATA_DIRS", pathJoin(base, "share"))  -- completions of bash and fish
prepend_path("FPATH", pathJoin(base, "share/zsh/vendor-completions"))
setenv("TALLY_ROOT", base)
-- tally-train finds LibTorch where it was built with it. For another one, of the same version:
-- prepend_path("LD_LIBRARY_PATH", "/path/to/site-packages/torch/lib")
