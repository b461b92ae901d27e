package proxy

import (
	"fmt"
	"testing"

	"github.com/irb-project/irb/agent/pick"
	"github.com/irb-project/irb/agent/snapshot"
)

// BenchmarkSetTable takes a table of 10,000 weights into service: four for each
// of 2,500 classes.
func BenchmarkSetTable(b *testing.B) {
	var engines []snapshot.Engine
	for i := range 4 {
		engines = append(engines, snapshot.Engine{Name: fmt.Sprint("e", i), Endpoints: []string{fmt.Sprintf("http://127.0.0.1:%d", i+1)}})
	}
	s := fleet(engines...)
	for i := range 2500 {
		src := s.Sources[0]
		src.Class = fmt.Sprintf("k%05d", i)
		s.Classes = append(s.Classes, snapshot.Class{Name: src.Class})
		s.Sources = append(s.Sources, src)
	}
	r := start(b, nil, "")
	table, err := pick.NewTable(s, "here")
	if err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		r.proxy.SetTable(table)
	}
}
