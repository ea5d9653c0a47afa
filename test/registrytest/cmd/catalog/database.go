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
	// protocol is version 3.0 of the PostgreSQL protocol.
	protocol = 3 << 16
	// authentication is the type of an authentication request.
	authentication = 'R'
	// databaseTimeout limits the time until the database responds.
	databaseTimeout = 2 * time.Second
)

// checkDatabase returns an error unless the database in the variables of libpq sends an authentication request.
func checkDatabase(ctx context.Context) error {
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
		return fmt.Errorf("got message type %q, want %q", kind[0], authentication)
	}
	return nil
}

// startup returns the startup message of a connection.
func startup(user, database string) []byte {
	body := fmt.Appendf(nil, "user\x00%s\x00database\x00%s\x00\x00", user, database)
	message := binary.BigEndian.AppendUint32(nil, uint32(len(body)+8)) //nolint:gosec // names are short
	return append(binary.BigEndian.AppendUint32(message, protocol), body...)
}
