// Package crash proves that errand may die at any instant: it lists every commit of the store and
// every outside call of one whole life as a failpoint, has errand die there, starts it again over
// the same data and plays on. The end has to be the same as if nothing had happened.
//
// A failpoint is an operation with a number and a moment: before the effect, or after it with the
// answer lost. From then on nothing that this errand does has an effect any more, as after kill -9,
// while GitHub, the model and the boxes live on. Outside calls are also made to fail, or to go
// unheard, while errand lives on. TestKill kills a process at random instants; TestControls plants
// faults that have to be noticed. Start reading at TestCrash, then at gate.
//
// ERRAND_TEST_FULL=1 plays all of it, with several deaths in one life; otherwise a few failpoints
// are drawn, and ERRAND_CRASH_SEED draws the same again. ERRAND_CRASH_POINTS=<regular expression>
// plays those whose name, such as "after github: updateRefs #1", matches.
package crash
