package egress

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"
)

func TestLog(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "egress")
	l, err := OpenLog(dir)
	if err != nil {
		t.Fatal(err)
	}
	const many = 10_000 // more than fits into one file
	for i := range many {
		if err := l.Add("7-1", Request{Method: "CONNECT", Host: fmt.Sprintf("h%d.test", i), Port: "443", Reason: "because it is on no list of anybody"}); err != nil {
			t.Fatal(err)
		}
	}
	f, err := os.OpenFile(filepath.Join(dir, "7-1.jsonl"), os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.WriteString(`{"host":"torn`); err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	list, all, err := l.Last("7-1", 3)
	if err != nil || len(list) != 3 || list[2].Host != fmt.Sprintf("h%d.test", many-1) || list[0].Host != fmt.Sprintf("h%d.test", many-3) {
		t.Errorf("the last: %+v, %v", list, err)
	}
	if all <= 3 || all > many {
		t.Errorf("%d in all", all)
	}
	if list, all, err := l.Last("7-2", 3); err != nil || len(list) != 0 || all != 0 {
		t.Errorf("of another task: %v, %d, %v", list, all, err)
	}
	for _, task := range []string{"", "../7-1", "7-1/x", "a-b"} {
		if l.Add(task, Request{}) == nil {
			t.Errorf("a task %q is taken", task)
		}
	}
	if err := l.Prune(time.Now().Add(time.Hour)); err != nil {
		t.Fatal(err)
	}
	if list, _, err := l.Last("7-1", 3); err != nil || len(list) != 0 {
		t.Errorf("after pruning: %v, %v", list, err)
	}
}
