package collect

// Tokens are means per request.
type Tokens struct {
	Prompt, Output Mean
	// Cached are tokens of prompts that came from a cache, CachedOf all
	// tokens of prompts whose engine tells both.
	Cached, CachedOf Mean
}

// Mean is a sum over a number of reports.
type Mean struct {
	Sum, Reports float64
	Estimated    float64 // of the reports, how many are estimates of the agent
}

// minReports is how many requests a mean must be of; below, the fleet's own
// figure is the better guess. The mean of 30 requests whose lengths vary as
// much as they are long is within some 20 % of the truth.
const minReports = 30

// Value returns the mean; false if there are too few reports.
func (m Mean) Value() (float64, bool) {
	if !(m.Reports >= minReports) {
		return 0, false
	}
	return m.Sum / m.Reports, true
}

// enough returns m, or other if m is of too few requests.
func enough(m, other Mean) Mean {
	if _, ok := m.Value(); ok {
		return m
	}
	return other
}

// addTokens sorts samples by source and kind.
func addTokens(found map[Pair]*Tokens, samples []sample, add func(m *Mean, v float64, estimated bool)) {
	for _, x := range samples {
		pair := Pair{x.labels["irb_cluster"], x.labels["class"]}
		if found[pair] == nil {
			found[pair] = &Tokens{}
		}
		estimated := x.labels["source"] == "estimate"
		switch x.labels["kind"] {
		case "prompt":
			add(&found[pair].Prompt, x.value, estimated)
			if !estimated {
				add(&found[pair].CachedOf, x.value, estimated)
			}
		case "cached":
			add(&found[pair].Cached, x.value, estimated)
		case "output":
			add(&found[pair].Output, x.value, estimated)
		}
	}
}

func addSum(m *Mean, v float64, _ bool) { m.Sum += v }

func addReports(m *Mean, v float64, estimated bool) {
	m.Reports += v
	if estimated {
		m.Estimated += v
	}
}
