package main

import (
	"cmp"
	"context"
	"encoding/binary"
	"fmt"
	"net"
	"os"
	"time"
)

const (
	// protocol is the version of the protocol of PostgreSQL.
	protocol = 3 << 16
	// authentication is the type of the message with which a database asks for a password.
	authentication = 'R'
	// databaseTimeout bounds the response of the database.
	databaseTimeout = 2 * time.Second
)

// databaseResponds returns an error unless the database of the variables of libpq asks for a password.
func databaseResponds(ctx context.Context) error {
	connection, err := (&net.Dialer{Timeout: databaseTimeout}).DialContext(ctx, "tcp", net.JoinHostPort(os.Getenv("PGHOST"), cmp.Or(os.Getenv("PGPORT"), "5432")))
	if err != nil {
		return err
	}
	defer func() { _ = connection.Close() }()
	if err := connection.SetDeadline(time.Now().Add(databaseTimeout)); err != nil {
		return err
	}
	if _, err := connection.Write(startup(os.Getenv("PGUSER"), os.Getenv("PGDATABASE"))); err != nil {
		return err
	}
	var kind [1]byte
	if _, err := connection.Read(kind[:]); err != nil {
		return err
	}
	if kind[0] != authentication {
		return fmt.Errorf("it sent a message of type %q", kind[0])
	}
	return nil
}

// startup returns the first message of a connection.
func startup(user, database string) []byte {
	body := fmt.Appendf(nil, "user\x00%s\x00database\x00%s\x00\x00", user, database)
	message := binary.BigEndian.AppendUint32(nil, uint32(len(body)+8)) //nolint:gosec // names are short
	return append(binary.BigEndian.AppendUint32(message, protocol), body...)
}
