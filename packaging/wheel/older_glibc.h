// Read before everything else in a build for a wheel (cmake/wheel.cmake): libstdc++'s headers are this machine's, and would
// call what an older glibc does not have.
#ifdef __cplusplus
#include <bits/c++config.h>
#undef _GLIBCXX_HAVE_ARC4RANDOM
#undef _GLIBCXX_USE_PTHREAD_COND_CLOCKWAIT
#undef _GLIBCXX_USE_PTHREAD_MUTEX_CLOCKLOCK
#undef _GLIBCXX_USE_PTHREAD_RWLOCK_CLOCKLOCK
#endif
