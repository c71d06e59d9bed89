// Stands for a benchmark's source: compiled by nobody, copied and looked at.
#define ARRAY_SIZE 1000
int main(void) { return 0; }
