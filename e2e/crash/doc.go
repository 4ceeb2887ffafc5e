// Package crash proves that errand may crash at any moment. It lists every commit of the store and every external call
// of a complete task (to GitHub, VMs, the model, the disk) as a failpoint, crashes errand there, restarts it with the
// same data, and continues. The result must be the same as without the crash.
//
// A failpoint is an operation with a number and a moment: before the effect, or after it with the answer lost. From
// then on no operation of this errand process has an effect, as after kill -9, while GitHub, the model and the
// sandboxes continue; or errand continues, and only this operation fails or loses its answer. Time is virtual (see
// clock). TestHeavyKill kills a process at random moments, TestHeavyDurable checks with strace that data is on disk
// before it is acknowledged, and TestHeavyControls plants faults that must be detected.
// TestHeavyContinuity and others do the same for other lives. Start reading at TestHeavyCrash, then at gate.
//
// ERRAND_TEST_FULL=1 runs all of it. Tests without Heavy select some failpoints: TestSample draws them, and
// ERRAND_CRASH_SEED repeats the draw; TestContinuity and others play every fifth. With ERRAND_CRASH_POINTS=<regular expression>
// TestHeavyCrash runs those whose name, such as "after github: updateRefs #1", matches.
package crash
