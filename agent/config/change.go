package config

import (
	"reflect"
	"strings"
)

// NeedsRestart returns the keys of the settings that differ between the
// running config and next and are not taken over by a reload.
func NeedsRestart(running, next *Config) []string {
	var keys []string
	if len(running.Listeners) != len(next.Listeners) {
		keys = append(keys, "listener")
	}
	for _, s := range Settings() {
		if s.Reload {
			continue
		}
		if !strings.HasPrefix(s.Key, "listener.") {
			if !reflect.DeepEqual(s.field(running, nil), s.field(next, nil)) {
				keys = append(keys, s.Key)
			}
			continue
		}
		for i := range min(len(running.Listeners), len(next.Listeners)) {
			if !reflect.DeepEqual(s.field(nil, &running.Listeners[i]), s.field(nil, &next.Listeners[i])) {
				keys = append(keys, s.Key)
				break
			}
		}
	}
	return keys
}
