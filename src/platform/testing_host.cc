// The host process of the tests: testing_host <control descriptor>.
#include <cstdlib>

#include "platform/local_host.h"

int main(int argc, char** argv) { return argc == 2 ? funcpipe::host_main(std::atoi(argv[1])) : 2; }
