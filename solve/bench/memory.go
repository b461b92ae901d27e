package main

import (
	"os"
	"strconv"
	"strings"
)

// peakBytes returns the peak of resident memory of this process, -1 where the
// system does not say (it is Linux that does).
func peakBytes() float64 {
	status, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return -1
	}
	return parsePeak(string(status))
}

// parsePeak finds "VmHWM:   1234 kB".
func parsePeak(status string) float64 {
	_, rest, found := strings.Cut(status, "VmHWM:")
	fields := strings.Fields(rest)
	if !found || len(fields) == 0 {
		return -1
	}
	kb, err := strconv.ParseFloat(fields[0], 64)
	if err != nil {
		return -1
	}
	return kb * 1024
}

// forgetPeak makes the present resident memory the peak. Where the system does
// not let it, the peak stays what it was, which only makes ours look worse.
func forgetPeak() {
	_ = os.WriteFile("/proc/self/clear_refs", []byte("5"), 0)
}
