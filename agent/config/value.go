package config

import (
	"fmt"
	"math"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Bytes is a size; it is written as a number with a unit, "4MiB".
type Bytes int64

var byteUnits = []struct {
	name string
	size float64
}{{"KiB", 1 << 10}, {"MiB", 1 << 20}, {"GiB", 1 << 30}, {"B", 1}}

func parseBytes(s string) (Bytes, error) {
	for _, u := range byteUnits {
		number, ok := strings.CutSuffix(s, u.name)
		if !ok {
			continue
		}
		n, err := strconv.ParseFloat(strings.TrimSpace(number), 64)
		if err != nil || !(n >= 0) || n*u.size > math.MaxInt64/2 {
			break
		}
		return Bytes(n * u.size), nil
	}
	return 0, fmt.Errorf("want a size such as 64KiB or 4MiB")
}

// kind names the type and unit of a setting as the table and messages do.
func (s *Setting) kind() string {
	switch s.field(&Config{}, &Listener{}).(type) {
	case *bool:
		return "true or false"
	case *int:
		return "integer"
	case *float64:
		return "number"
	case *time.Duration:
		return "duration"
	case *Bytes:
		return "size"
	case *[]string:
		return "list of strings"
	case *[]netip.Prefix:
		return "list of networks"
	default:
		return "string"
	}
}

// want says which values a setting takes.
func (s *Setting) want() string {
	switch {
	case s.OneOf != nil:
		return "one of " + strings.Join(s.OneOf, ", ")
	case s.Min != "" || s.Max != "":
		return fmt.Sprintf("%s from %s to %s", article(s.kind()), s.Min, s.Max)
	}
	switch k := s.kind(); k {
	case "true or false":
		return k
	case "list of networks":
		return `a list of networks such as "10.0.0.0/8"`
	default:
		return article(k)
	}
}

// set stores the TOML value v at dst. ok is false if v is not what the setting
// wants.
func (s *Setting) set(dst, v any) (ok bool) {
	switch d := dst.(type) {
	case *string:
		*d, ok = v.(string)
		return ok && (s.OneOf == nil || slices.Contains(s.OneOf, *d))
	case *bool:
		*d, ok = v.(bool)
		return ok
	case *int:
		n, isInt := v.(int64)
		*d = int(n)
		return isInt && s.inRange(float64(n), func(t string) float64 { return mustFloat(t) })
	case *float64:
		switch n := v.(type) {
		case int64:
			*d = float64(n)
		case float64:
			*d = n
		default:
			return false
		}
		return s.inRange(*d, mustFloat)
	case *time.Duration:
		text, isString := v.(string)
		n, err := time.ParseDuration(text)
		*d = n
		return isString && err == nil && s.inRange(float64(n), func(t string) float64 {
			n, _ := time.ParseDuration(t)
			return float64(n)
		})
	case *Bytes:
		text, isString := v.(string)
		n, err := parseBytes(text)
		*d = n
		return isString && err == nil && s.inRange(float64(n), func(t string) float64 {
			n, _ := parseBytes(t)
			return float64(n)
		})
	case *[]string:
		*d, ok = stringList(v)
		return ok
	case *[]netip.Prefix:
		*d, ok = networkList(v)
		return ok
	}
	return false
}

// inRange is false for NaN as well.
func (s *Setting) inRange(v float64, bound func(string) float64) bool {
	return (s.Min == "" || v >= bound(s.Min)) && (s.Max == "" || v <= bound(s.Max))
}

func mustFloat(s string) float64 {
	f, _ := strconv.ParseFloat(s, 64)
	return f
}

func stringList(v any) ([]string, bool) {
	values, ok := v.([]any)
	if !ok {
		return nil, false
	}
	list := make([]string, 0, len(values))
	for _, e := range values {
		text, ok := e.(string)
		if !ok || text == "" {
			return nil, false
		}
		list = append(list, text)
	}
	return list, true
}

// networkList reads CIDRs; a bare address is the network of that one address.
func networkList(v any) ([]netip.Prefix, bool) {
	texts, ok := stringList(v)
	if !ok {
		return nil, false
	}
	list := make([]netip.Prefix, 0, len(texts))
	for _, t := range texts {
		if addr, err := netip.ParseAddr(t); err == nil && addr.Zone() == "" {
			list = append(list, netip.PrefixFrom(addr, addr.BitLen()))
			continue
		}
		prefix, err := netip.ParsePrefix(t)
		if err != nil {
			return nil, false
		}
		list = append(list, prefix.Masked())
	}
	return list, true
}

func article(noun string) string {
	if noun == "integer" {
		return "an " + noun
	}
	return "a " + noun
}
