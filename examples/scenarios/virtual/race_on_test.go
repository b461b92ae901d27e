//go:build race

package virtual

// raceDetector says that tests are some ten times slower. Virtual time runs in
// one goroutine, so there is nothing to detect in long scenarios.
const raceDetector = true
