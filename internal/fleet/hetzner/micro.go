package hetzner

import (
	"fmt"
	"math"
	"strings"

	"github.com/hetznercloud/hcloud-go/v2/hcloud/schema"
)

// parseMicro converts a decimal number such as "0.0104720000000000" to millionths. It rounds up, so that caps hold.
func parseMicro(text string) (int64, error) {
	whole, part, _ := strings.Cut(text, ".")
	if whole == "" || strings.Trim(whole+part, "0123456789") != "" {
		return 0, fmt.Errorf("price %q is not a decimal number", text)
	}
	var out int64
	for _, c := range whole + (part + "000000")[:6] {
		if out > (math.MaxInt64-10)/10 {
			return 0, fmt.Errorf("price %q is out of range", text)
		}
		out = out*10 + int64(c-'0')
	}
	if len(part) > 6 && strings.Trim(part[6:], "0") != "" {
		out++
	}
	return out, nil
}

func hourMonth(hour, month schema.Price) (out [2]int64, err error) {
	if out[0], err = parseMicro(hour.Gross); err != nil {
		return out, err
	}
	out[1], err = parseMicro(month.Gross)
	return out, err
}
