package main

import (
	"fmt"
	"slices"
	"strings"

	"github.com/irb-project/irb/agent/config"
	"github.com/irb-project/irb/agent/proxy"
	"github.com/irb-project/irb/agent/snapshot"
)

// maxMisfits are told of at once: a wrong network may leave out every engine.
const maxMisfits = 20

// misfits says where a snapshot and the settings do not fit together. Each is
// served all the same, but not as either of them says, and nobody would know why.
func misfits(s *snapshot.Snapshot, c *config.Config) (texts []string) {
	for _, e := range proxy.Outside(s, c.AllowEngineNetworks) {
		texts = append(texts, e+" is not in allow_engine_networks and gets no request")
	}
	for _, list := range []struct {
		name    string
		engines []string
	}{{"hold", c.Hold}, {"drain", c.Drain}} {
		for _, name := range list.engines {
			if !slices.ContainsFunc(s.Engines, func(e snapshot.Engine) bool { return e.Name == name }) {
				texts = append(texts, fmt.Sprintf("%s names engine %q, which is not in the snapshot", list.name, name))
			}
		}
	}
	for i := range s.Classes {
		for header := range s.Classes[i].Match.Headers {
			if !slices.ContainsFunc(c.TrustedHeaders, func(t string) bool { return strings.EqualFold(t, header) }) {
				texts = append(texts, fmt.Sprintf("class %q matches on header %q, which is not in trusted_headers: it takes no request", s.Classes[i].Name, header))
			}
		}
	}
	slices.Sort(texts)
	if more := len(texts) - maxMisfits; more > 0 {
		texts = append(texts[:maxMisfits], fmt.Sprintf("and %d more", more))
	}
	return texts
}
