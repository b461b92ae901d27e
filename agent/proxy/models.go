package proxy

import (
	"encoding/json"
	"net/http"
	"strings"

	"github.com/irb-project/irb/agent/metrics"
	"github.com/irb-project/irb/agent/pick"
)

// model is an entry of OpenAI's list of models.
type model struct {
	ID      string `json:"id"`
	Object  string `json:"object"`
	Created int64  `json:"created"` // of the snapshot, unix s
	OwnedBy string `json:"owned_by"`
}

// listModels answers what clients ask at their start: which models there are, or
// whether there is one. Classes that are told apart by model take no such
// request, and an engine would know its own models only. It returns false if
// the request is another.
func (x *exchange) listModels(f pick.Facts) (*answer, bool) {
	_, name, ok := strings.Cut(x.request.URL.Path, "/v1/models")
	read := x.request.Method == http.MethodGet || x.request.Method == http.MethodHead
	if !ok || !read || name != "" && name[0] != '/' {
		return nil, false
	}
	name = strings.Trim(name, "/")
	s := x.plan.table.Snapshot()
	list := []model{}
	for _, id := range x.plan.table.Models(f) {
		m := model{ID: id, Object: "model", Created: s.Created.Unix(), OwnedBy: s.Fleet}
		if id == name {
			return x.listed(m), true
		}
		list = append(list, m)
	}
	if name != "" {
		return nil, false
	}
	return x.listed(map[string]any{"object": "list", "data": list}), true
}

func (x *exchange) listed(v any) *answer {
	text, err := json.Marshal(v)
	if err != nil {
		return &answer{status: http.StatusInternalServerError, kind: "server_error", code: "internal", message: err.Error()}
	}
	x.outcome = metrics.OK
	return &answer{status: http.StatusOK, content: text}
}
