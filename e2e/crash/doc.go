// Package crash proves that errand may die at any instant: it lists every commit of the store and
// every outside call of one whole life (to GitHub, VMs, the model, the disk) as a failpoint, has
// errand die there, starts it again over the same data and plays on. The end has to be the same as if
// nothing had happened.
//
// A failpoint is an operation with a number and a moment: before the effect, or after it with the
// answer lost. From then on nothing that this errand does has an effect any more, as after kill -9,
// while GitHub, the model and the boxes live on; or errand lives on, and the operation alone fails or
// goes unheard. Time is that of clock. TestHeavyKill kills a process at random instants, TestHeavyDurable looks
// with strace whether what is answered is on disk, and TestHeavyControls plants faults that have to be
// noticed. Start reading at TestHeavyCrash, then at gate.
//
// ERRAND_TEST_FULL=1 plays all of it; TestSample draws a few failpoints, and
// ERRAND_CRASH_SEED draws the same again. ERRAND_CRASH_POINTS=<regular expression> has TestHeavyCrash play
// those whose name, such as "after github: updateRefs #1", matches.
package crash
