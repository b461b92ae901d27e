package explain

import (
	"encoding/json"
	"io"

	"github.com/BurntSushi/toml"

	"github.com/irb-project/irb/agent/snapshot"
)

// Tree returns a snapshot, or a view of one, for machines: the same keys and
// values as in the weight file.
func Tree(s *snapshot.Snapshot) (map[string]any, error) {
	body, err := snapshot.Encode(s)
	if err != nil {
		return nil, err
	}
	var tree map[string]any
	return tree, toml.Unmarshal(body, &tree)
}

// JSON prints the tree of a snapshot.
func JSON(w io.Writer, s *snapshot.Snapshot) error {
	tree, err := Tree(s)
	if err != nil {
		return err
	}
	encoder := json.NewEncoder(w)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", "  ")
	return encoder.Encode(tree)
}
