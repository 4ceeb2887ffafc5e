package simgithub

import "time"

// Account types, as GitHub writes them.
const (
	TypeUser = "User"
	TypeBot  = "Bot"
	TypeOrg  = "Organization"
)

// User is an account. It never changes after its creation, so pointers to it may be shared.
type User struct {
	ID        int64
	NodeID    string
	Login     string
	Name      string // of the profile, empty for none
	Type      string // TypeUser, TypeBot or TypeOrg
	Token     string `json:"-"` // a personal access token, empty for bots and organizations
	CreatedAt time.Time
}

// Role is the role of a collaborator: none < read < triage < write < maintain < admin.
type Role string

// The roles of a repository, weakest first.
const (
	RoleNone     Role = "none"
	RoleRead     Role = "read"
	RoleTriage   Role = "triage"
	RoleWrite    Role = "write"
	RoleMaintain Role = "maintain"
	RoleAdmin    Role = "admin"
)

// Rank returns the position of a role in their order. An unknown role ranks as none.
func (r Role) Rank() int {
	switch r {
	case RoleRead:
		return 1
	case RoleTriage:
		return 2
	case RoleWrite:
		return 3
	case RoleMaintain:
		return 4
	case RoleAdmin:
		return 5
	default:
		return 0
	}
}

// legacy returns the older `permission` value: maintain counts as write and triage as read.
func (r Role) legacy() string {
	switch r {
	case RoleMaintain:
		return "write"
	case RoleTriage:
		return "read"
	case RoleRead, RoleWrite, RoleAdmin:
		return string(r)
	default:
		return "none"
	}
}

// App is the GitHub App of a simulator.
type App struct {
	ID            int64
	NodeID        string
	Slug          string
	Name          string
	ClientID      string
	ClientSecret  string
	CallbackURLs  []string          // where people may be sent who authorized the App
	Owner         string            // login of the account that owns the App
	PEM           []byte            // PKCS#1 private key, for the client under test
	WebhookSecret string            // at the time of the call; PATCH /app/hook/config changes it
	WebhookURL    string            // empty: deliveries are recorded as failed
	Permissions   map[string]string // requested permissions: name to read, write or admin
	Events        []string          // webhook events subscribed to
	BotLogin      string            // slug[bot]
	BotID         int64             // user id of the bot account
}

// Installation is the App on one account, with the repositories that it may access.
type Installation struct {
	ID          int64
	NodeID      string
	Account     string
	RepoIDs     []int64
	Permissions map[string]string
	Suspended   bool
	CreatedAt   time.Time
	UpdatedAt   time.Time
}

func (i *Installation) has(repoID int64) bool {
	for _, id := range i.RepoIDs {
		if id == repoID {
			return true
		}
	}
	return false
}
