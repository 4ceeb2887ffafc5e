package event

import (
	"encoding/json"
	"fmt"
	"slices"
)

// envelope is Event without its methods.
type envelope Event

// MarshalJSON returns one flat object: the kind, the fields of the event and those of the payload.
func (e Event) MarshalJSON() ([]byte, error) {
	head, err := json.Marshal(struct {
		Kind Kind `json:"kind"`
		envelope
	}{e.Kind(), envelope(e)})
	if err != nil {
		return nil, fmt.Errorf("marshal an event: %w", err)
	}
	payload, err := json.Marshal(e.Payload)
	if err != nil {
		return nil, fmt.Errorf("marshal the payload of a %s event: %w", e.Kind(), err)
	}
	if len(payload) <= 2 || e.Payload == nil {
		return head, nil
	}
	return slices.Concat(head[:len(head)-1], []byte{','}, payload[1:]), nil
}

// UnmarshalJSON reads the form of MarshalJSON. A kind that is unknown is an error.
func (e *Event) UnmarshalJSON(data []byte) error {
	var head struct {
		Kind Kind `json:"kind"`
		envelope
	}
	if err := json.Unmarshal(data, &head); err != nil {
		return fmt.Errorf("unmarshal an event: %w", err)
	}
	payload, known := decoders[head.Kind]
	if !known {
		return fmt.Errorf("unmarshal an event: unknown kind %q", head.Kind)
	}
	*e = Event(head.envelope)
	var err error
	if e.Payload, err = payload(data); err != nil {
		return fmt.Errorf("unmarshal the payload of a %s event: %w", head.Kind, err)
	}
	return nil
}

func decode[P Payload](data []byte) (Payload, error) {
	var p P
	err := json.Unmarshal(data, &p)
	return p, err
}
