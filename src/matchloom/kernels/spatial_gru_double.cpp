// The same scan in double precision. Scores are computed by it and then rounded, so that the order in which something
// was added up, which a batch decides, is rounded away.

#define MATCHLOOM_DOUBLE
#include "spatial_gru.cpp"
