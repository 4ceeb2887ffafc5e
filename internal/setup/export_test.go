package setup

// FirstForeign is firstForeign, for tests.
var FirstForeign = firstForeign
