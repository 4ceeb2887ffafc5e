package stage

import (
	"fmt"
	"reflect"
	"strconv"
	"strings"
	"time"

	"github.com/errand-bot/errand/internal/server"
)

// SetTiming sets the field of a timing with the name key in lower case with underscores: status_gap is StatusGap. It
// returns false if there is no such field.
func SetTiming(t *server.Timing, key, value string) (bool, error) {
	f := reflect.ValueOf(t).Elem().FieldByNameFunc(func(name string) bool {
		return key == strings.ToLower(key) && strings.EqualFold(name, strings.ReplaceAll(key, "_", ""))
	})
	if !f.IsValid() {
		return false, nil
	}
	var err error
	var n int
	var d time.Duration
	if f.Kind() == reflect.Int {
		n, err = strconv.Atoi(value)
		f.Set(reflect.ValueOf(n))
	} else {
		d, err = time.ParseDuration(value)
		f.Set(reflect.ValueOf(d))
	}
	if err != nil {
		return true, fmt.Errorf("set the timing %s: %w", key, err)
	}
	return true, nil
}
