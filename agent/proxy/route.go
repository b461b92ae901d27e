package proxy

import (
	"fmt"
	"net/http"
	"strings"

	"github.com/irb-project/irb/agent/body"
	"github.com/irb-project/irb/agent/pick"
)

// classify finds the class of the request by the snapshot's rules.
func (x *exchange) classify() *answer {
	facts := pick.Facts{
		Method: x.request.Method,
		Path:   x.request.URL.Path,
		Model:  x.facts.Model,
	}
	if x.identity[0] != "" {
		facts.Identities = x.identity[:]
	}
	if x.believed {
		facts.Header = x.request.Header
	}
	x.class = x.plan.table.Match(facts)
	if x.class == nil {
		if list, ok := x.listModels(facts); ok {
			return list
		}
		return x.noClass()
	}
	n := x.class.Number
	x.guard, x.limits = x.plan.guards.Class(n), &x.plan.limits[n]
	x.deadline = x.start.Add(x.limits.total)
	if err := x.class.Routable(); err != nil {
		return &answer{
			status: http.StatusServiceUnavailable, kind: "server_error", code: "no_engine", dropped: droppedNoEndpoints,
			message: err.Error(),
		}
	}
	return nil
}

// noClass tells the client which classes there are: most often the model's name
// is misspelt, or the body is of a type in which it is not looked for.
func (x *exchange) noClass() *answer {
	if x.opaque && x.facts.Model == "" {
		return &answer{
			status: http.StatusUnsupportedMediaType, kind: "invalid_request_error", code: "unsupported_content_type",
			message: fmt.Sprintf("no traffic class takes %s %s without a model, and none can be read from a body of content type %q; send JSON as application/json, or name the model in the header %s",
				x.request.Method, x.request.URL.Path, x.request.Header.Get("Content-Type"), modelHeader),
		}
	}
	var classes []string
	for _, c := range x.plan.table.Classes() {
		text := c.Spec.Name
		models := c.Spec.Match.Models
		if len(models) == 0 && c.Spec.Model != "" {
			models = []string{c.Spec.Model}
		}
		if len(models) > 0 {
			text += " (model " + strings.Join(models, ", ") + ")"
		}
		classes = append(classes, text)
	}
	what := "without a model"
	if x.facts.Model != "" {
		what = fmt.Sprintf("for model %q", x.facts.Model)
	}
	return &answer{
		status: http.StatusNotFound, kind: "invalid_request_error", code: "model_not_found", param: "model",
		message: fmt.Sprintf("no traffic class takes %s %s %s; the classes are: %s",
			x.request.Method, x.request.URL.Path, what, strings.Join(classes, "; ")),
	}
}

// setKey finds what keeps the requests of a conversation together. The key is
// scoped by class and by who asks: equal words of two tenants are no
// conversation.
func (x *exchange) setKey() {
	material := x.facts.Affinity.Material
	source := x.facts.Affinity.Source
	x.keySource = source.String()
	if name := x.plan.affinityHeader; name != "" {
		if v := x.request.Header[name]; len(v) > 0 && v[0] != "" {
			material = pick.Material(v[0])
			x.keySource = "header"
			source = body.SourceCacheKey
		}
	}
	if source == body.SourceNone {
		x.key = x.proxy.spread.Next()
		return
	}
	x.key = pick.Key(x.class.Spec.Name, x.identity[0], material)
}

// pickRequest is the request as the picking code sees it.
func (x *exchange) pickRequest() pick.Request {
	return pick.Request{
		Key:  x.key,
		Stay: x.guard.Stay(),
		Need: x.class.Need(x.facts.Model, x.facts.ContextTokens(), x.facts.Capabilities()...),
		Hard: x.facts.Stateful,
	}
}
