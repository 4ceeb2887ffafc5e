// Package blob stores values in a key-value database that are larger than one of its values may be.
//
// Values are encoded as JSON, compressed, and split into parts where they are too large. Recently decoded values are
// cached. Start reading at Codec.PutJSON and Codec.GetJSON; Put, Get and Delete do the same for bytes.
package blob
