package changeset_test

import (
	"strings"
	"testing"

	"github.com/errand-bot/errand/internal/changeset"
)

func TestParsePointer(t *testing.T) {
	t.Parallel()
	const version = "version https://git-lfs.github.com/spec/v1\n"
	oid := strings.Repeat("0a", 32)
	whole := changeset.Pointer{OID: oid, Size: 12}
	tests := map[string]struct {
		text    string
		want    changeset.Pointer
		pointer bool
	}{
		"a pointer":                 {version + "oid sha256:" + oid + "\nsize 12\n", whole, true},
		"without a last newline":    {version + "oid sha256:" + oid + "\nsize 12", whole, true},
		"of an old release":         {"version https://hawser.github.com/spec/v1\noid sha256:" + oid + "\nsize 12\n", whole, true},
		"with an extension":         {version + "ext-0-foo sha256:" + oid + "\noid sha256:" + oid + "\nsize 12\n", whole, true},
		"after an invalid line":     {version + "oid sha256:zz\noid sha256:" + oid + "\nsize x\nsize 12\n", whole, true},
		"the largest size":          {version + "oid sha256:" + oid + "\nsize 999999999999999\n", changeset.Pointer{OID: oid, Size: 999999999999999}, true},
		"too many digits":           {version + "oid sha256:" + oid + "\nsize 1000000000000000\n", changeset.Pointer{}, true},
		"a negative size":           {version + "oid sha256:" + oid + "\nsize -1\n", changeset.Pointer{}, true},
		"no size":                   {version + "oid sha256:" + oid + "\nsize \n", changeset.Pointer{}, true},
		"upper case":                {version + "oid sha256:" + strings.ToUpper(oid) + "\nsize 12\n", changeset.Pointer{}, true},
		"a short id":                {version + "oid sha256:" + oid[1:] + "\nsize 12\n", changeset.Pointer{}, true},
		"Windows' ends of lines":    {version + "oid sha256:" + oid + "\r\nsize 12\r\n", changeset.Pointer{}, true},
		"an id within a line":       {version + "x oid sha256:" + oid + "\nsize 12\n", changeset.Pointer{}, true},
		"another text":              {"oid sha256:" + oid + "\nsize 12\n", changeset.Pointer{}, false},
		"larger than a pointer may": {version + "oid sha256:" + oid + "\nsize 12\n" + strings.Repeat("x", changeset.MaxPointer), changeset.Pointer{}, false},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got, pointer := changeset.ParsePointer([]byte(tt.text)); got != tt.want || pointer != tt.pointer {
				t.Errorf("got %+v, %t, want %+v, %t", got, pointer, tt.want, tt.pointer)
			}
		})
	}
}
