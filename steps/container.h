// The command that puts a run step's program into its image.
#pragma once

#include <string>

#include "engine/expand/substitute.h"
#include "engine/workflow/workflow.h"

namespace tally {

// "apptainer exec --nv ... IMAGE", to stand between the starter and the program; empty when neither
// the step nor its platform names an image. The step's keys come before the platform's parameters
// container_runtime, _image, _gpus, _bind, _args and _env (NAME=value lines). The program sees the
// folder of the runs (a step's parents lie there), starts in its work directory, and sees the GPUs
// when the job asks for any (gpuspernode), unless the step says otherwise.
std::string container_command(const Step& step, const Lookup& lookup);

}  // namespace tally
