// Package crash proves that errand may die at any instant: it lists every commit of the store and
// every outside call of one whole life as a failpoint, has errand die there, starts it again over
// the same data and plays on. The end has to be the same as if nothing had happened.
//
// A failpoint is an operation with a number and a moment: before the effect, or after it with the
// answer lost. From that moment nothing that this errand does has an effect any more, as after
// kill -9; GitHub, the model and the boxes live on. Start reading at TestCrash, then at gate.
//
// ERRAND_TEST_FULL=1 plays all of them; otherwise a few are drawn, and ERRAND_CRASH_SEED draws the
// same again. ERRAND_CRASH_POINTS=<regular expression> plays those whose name matches.
package crash
