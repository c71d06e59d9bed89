// Reads what a scheduler's commands print, as its table says. Pure functions.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "engine/base/status.h"
#include "engine/execute/jobs/scheduler.h"
#include "engine/workflow/scheduler_table.h"

namespace tally {

// The fields of a job, by the scheduler's names and by those of ours that the table gives.
using JobFields = std::map<std::string, std::string>;

// Fails if the text is not a whole answer of this form: nothing is concluded from it then.
Status read_answer(const AnswerForm& form, const std::string& text, std::vector<JobFields>* jobs);

// A job that the scheduler says not to have has no report: *known is false then.
JobReport report_of(const SchedulerTable& table, const AnswerForm& form, const JobFields& fields,
                    bool* known);

// The id in the last line that has the table's form, or nothing.
std::string submitted_id(const SchedulerTable& table, const std::string& printed);

// The resources that an ended job used.
JobUse use_of(const JobFields& fields);

}  // namespace tally
