package explain

import (
	"encoding/json"
	"io"

	"github.com/BurntSushi/toml"

	"github.com/irb-project/irb/agent/snapshot"
)

// JSON prints a snapshot, or a view of one, for machines: the same keys and
// values as in the weight file.
func JSON(w io.Writer, s *snapshot.Snapshot) error {
	body, err := snapshot.Encode(s)
	if err != nil {
		return err
	}
	var tree map[string]any
	if err := toml.Unmarshal(body, &tree); err != nil {
		return err
	}
	encoder := json.NewEncoder(w)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", "  ")
	return encoder.Encode(tree)
}
