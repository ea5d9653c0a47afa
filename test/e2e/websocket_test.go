//go:build e2e

package e2e_test

import (
	"bufio"
	"context"
	"encoding/binary"
	"errors"
	"io"
	"net/http"
	"strings"
)

// listen opens a WebSocket and returns the text of all messages until the server closes it.
func (e *externalProxy) listen(ctx context.Context, c call) (string, error) {
	request, err := c.request(ctx, http.NoBody)
	if err != nil {
		return "", err
	}
	for key, value := range map[string]string{"Connection": "Upgrade", "Upgrade": "websocket", "Sec-WebSocket-Version": "13", "Sec-WebSocket-Key": "dGhlIHNhbXBsZSBub25jZQ=="} {
		request.Header.Set(key, value)
	}
	client := e.client()
	client.Transport.(*http.Transport).ForceAttemptHTTP2 = false
	response, err := client.Do(request)
	if err != nil {
		return "", err
	}
	defer func() { _ = response.Body.Close() }() // all messages are read
	if response.StatusCode != http.StatusSwitchingProtocols {
		return "", errors.New(response.Status)
	}
	return readMessages(bufio.NewReader(response.Body))
}

// readMessages returns the text of the frames of a WebSocket, see RFC 6455. Servers do not mask frames.
func readMessages(reader io.Reader) (string, error) {
	const opcode, closes, short, long = 0x0f, 8, 126, 127
	var text strings.Builder
	for {
		var header [2]byte
		if _, err := io.ReadFull(reader, header[:]); err != nil {
			return text.String(), err
		}
		length := uint64(header[1])
		if length == short || length == long {
			extended := make([]byte, map[uint64]int{short: 2, long: 8}[length])
			if _, err := io.ReadFull(reader, extended); err != nil {
				return text.String(), err
			}
			length = binary.BigEndian.Uint64(append(make([]byte, 8-len(extended)), extended...))
		}
		payload := make([]byte, length)
		if _, err := io.ReadFull(reader, payload); err != nil {
			return text.String(), err
		}
		if header[0]&opcode == closes {
			return text.String(), nil
		}
		text.Write(payload)
	}
}
