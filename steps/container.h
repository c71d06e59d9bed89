// The command that runs a run step's program in its container image.
#pragma once

#include <string>

#include "engine/expand/substitute.h"
#include "engine/workflow/workflow.h"

namespace tally {

// Returns "apptainer exec --nv ... IMAGE", or pyxis' options of srun, which are placed between the
// starter and the program.
// Empty when neither the step nor its platform names an image. The step's keys take precedence over
// the platform's parameters container_runtime, _image, _gpus, _bind, _args and _env (NAME=value
// lines). The program starts in its work directory and sees the folder of the runs, which holds the
// step's parents. It sees the GPUs when the job requests any (gpuspernode), unless the step says
// otherwise.
std::string container_command(const Step& step, const Lookup& lookup);

// Why the program cannot be started so; empty where it can.
std::string container_fault(const Step& step, const Lookup& lookup);

}  // namespace tally
