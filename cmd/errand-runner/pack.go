package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/errand-bot/errand/internal/runner/pack"
)

// maxSpec bounds the line with the specification of unpack in bytes.
const maxSpec = 1 << 20

func packCommand() *cobra.Command {
	return &cobra.Command{
		Use: "pack", Short: "Pack a workspace's work for another VM: pack.Spec in, the stream out", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			var spec pack.Spec
			if err := readInput(cmd, &spec); err != nil {
				return err
			}
			_, err := pack.Pack(cmd.Context(), spec, cmd.OutOrStdout())
			return err
		},
	}
}

func unpackCommand() *cobra.Command {
	return &cobra.Command{
		Use: "unpack", Short: "Restore packed work in a prepared workspace: pack.UnpackSpec on one line and the stream in, pack.Manifest out",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			in := bufio.NewReaderSize(cmd.InOrStdin(), 1<<16)
			spec, err := readLine(in)
			if err != nil {
				return fmt.Errorf("read standard input: %w", err)
			}
			m, err := pack.Unpack(cmd.Context(), spec, in)
			if err != nil {
				return err
			}
			return answer(cmd, m)
		},
	}
}

// readLine reads the specification, which ends with a newline.
func readLine(in *bufio.Reader) (spec pack.UnpackSpec, err error) {
	var line []byte
	for {
		part, err := in.ReadSlice('\n')
		line = append(line, part...)
		if err == nil {
			break
		}
		if !errors.Is(err, bufio.ErrBufferFull) || len(line) > maxSpec {
			if errors.Is(err, io.EOF) {
				err = io.ErrUnexpectedEOF
			}
			return spec, err
		}
	}
	decoder := json.NewDecoder(bytes.NewReader(line))
	decoder.DisallowUnknownFields()
	return spec, decoder.Decode(&spec)
}
