package command

import (
	"strings"
	"testing"
	"time"

	"github.com/errand-bot/errand/internal/cputest"
	"github.com/errand-bot/errand/state"
)

// quoted is what a mail program appends to a reply to a plan: GitHub hides the addresses in it.
const quoted = "\n\nOn Thu, Nov 26, 2026 at 4:05 PM errand[bot] ***@***.***> wrote:\n\n> ## Plan, revision 1 (`1a2b3c4d`)\n>\n> 1. Delete everything.\n>\n" +
	"> @errand approve 1a2b3c4d\n>\n> —\n> Reply to this email directly, view it on GitHub\n> <https://github.com/acme/slug/issues/1#issuecomment-5>, or unsubscribe\n" +
	"> <https://github.com/notifications/unsubscribe-auth/ABC>.\n> You are receiving this because you were mentioned.Message ID:\n> ***@***.***>\n>\n"

// TestRepliesByMail: what mail programs append to a reply is ignored; a comment with other words is a message.
func TestRepliesByMail(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]state.Remark{
		"LGTM" + quoted: state.RemarkApproving,
		"LGTM\r\n\r\nOn 26.11.2026 at 16:05 errand\r\nwrote:\r\n> x\r\n":         state.RemarkApproving,
		"LGTM\n\nOn step 2, do what Grace wrote:\n> return 404":                  "",
		"Thanks!\n\n-- \nAda Lovelace\nAnalytical Engines Ltd., London" + quoted: state.RemarkThanks,
		"Thanks!\n--\nAda": state.RemarkThanks,
		"Looks good to me\n\nSent from my iPhone" + quoted:                             state.RemarkApproving,
		"Thanks\n\nGet Outlook for iOS<https://aka.ms/x>":                              state.RemarkThanks,
		"Danke!\n\nAm 26.11.2026 um 16:05 schrieb errand[bot]:\n> x":                   state.RemarkThanks,
		"Merci\nLe jeu. 26 nov. 2026 à 16:05, errand[bot] ***@***.***> a écrit :\n> x": state.RemarkThanks,
		"@grace what do you think?\n\n-- \nAda" + quoted:                               state.RemarkToOthers,
		"Use a map." + quoted:                                         "",
		"LGTM, but use a map.\n\n-- \nAda" + quoted:                   "",
		strings.TrimSpace(quoted):                                     "",
		"-- \nAda":                                                    "",
		"LGTM\n\n> 1. Delete everything.":                             "", // not introduced as a mail
		"LGTM except for this:\n> 1. Delete everything.":              "",
		"On second thought, LGTM except:\n> 1. Delete everything.":    "",
		quoted + "\nUse a map.":                                       "",
		"LGTM\n--\n\nUse a map.":                                      "",
		"LGTM\n---\nUse a map.":                                       "",
		"LGTM\n-- \nUse a map.\n\nAnd a list.":                        "",
		"LGTM\n-- \n" + strings.Repeat("word\n", maxSignatureLines+1): "",
		"LGTM\nSent from my heart: use a map":                         "",
	} {
		if got := Parse(text, "errand", false); got.Remark != want || got.Mention || len(got.Orders) > 0 {
			t.Errorf("%q: got %+v, want the remark %q", text, got, want)
		}
	}
}

// TestCommandsByMail: a signature and a quoted mail below a command are neither its condition nor a message.
func TestCommandsByMail(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"@errand approve" + quoted:                          "approve",
		"@errand approve 1a2b3c4d\n\n-- \nAda" + quoted:     "approve 1a2b3c4d",
		"@errand approve with: use a map" + quoted:          "approve with: use a map",
		"@errand status\n\n-- \nAda" + quoted:               "status",
		"@errand status\n\nSent from my iPhone":             "status",
		"@errand status\n\nUse a map.\n\n-- \nAda" + quoted: "status / Use a map.",
		"@errand use a map\n--\nand a list":                 "use a map\n--\nand a list",
		"@errand use a map\n--\nand a list" + quoted:        "use a map\n--\nand a list",
		"@errand cancle" + quoted:                           "cancle",
		// These are conditions and messages, not mails.
		"@errand approve\n--\nbut keep the old endpoint":                                         "approve with: --\nbut keep the old endpoint",
		"@errand approve\n-- \nbut keep the old endpoint":                                        "approve with: --\nbut keep the old endpoint",
		"@errand approve\n\nOn step 2, do what Grace wrote:\n> return 404, not 500":              "approve with: On step 2, do what Grace wrote:\n> return 404, not 500",
		"@errand approve\nOn page 2 use blue.\nAs Grace wrote:\n> blue":                          "approve with: On page 2 use blue.\nAs Grace wrote:\n> blue",
		"@errand approve\n\nOn 12 March at 10:30 bob@example.org wrote:\n> use a list":           "approve with: On 12 March at 10:30 bob@example.org wrote:\n> use a list",
		"@errand Use what Bob said.\n\nOn Thu, Nov 26, 2026 at 4:05 PM Bob wrote:\n> use a list": "Use what Bob said.\n\nOn Thu, Nov 26, 2026 at 4:05 PM Bob wrote:\n> use a list",
		"Fine.\n--\n@errand cancel":                                                              "cancel",
		"@errand use a map\n\n> as here:\n> x":                                                   "use a map\n\n> as here:\n> x",
	} {
		var got []string
		for _, o := range Parse(text, "errand", false).Orders {
			got = append(got, strings.TrimSpace(Format(o)))
		}
		if strings.Join(got, " / ") != want {
			t.Errorf("%q: got %q, want %q", text, got, want)
		}
	}
	if p := Parse("LGTM"+quoted, "errand", false); p.Quoted {
		t.Error("a command in the quoted mail is answered")
	}
	if p := Parse(strings.TrimSpace(quoted), "errand", false); !p.Quoted {
		t.Error("a comment of a quotation only loses it")
	}
}

// TestLongMailsAreReadQuickly: the time for the longest comments is bounded.
func TestLongMailsAreReadQuickly(t *testing.T) {
	t.Parallel()
	for _, unit := range []string{"> a\n", "\n", "--\n", "On 1 ", "On 1 wrote:\n> a\n", "--\na\n", "> On 1 wrote:\n", "sent from my "} {
		text := strings.Repeat(unit, maxBody/len(unit))
		took := cputest.Time(t, func() {
			cutMail(text)
			cutAppended(text)
		})
		if took > 10*time.Second {
			t.Errorf("%q took %s", unit, took)
		}
	}
}
