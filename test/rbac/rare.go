package rbac

// rare are rights that no suite uses and that are needed all the same, with the reason; the key is the grant in one line.
var rare = map[string]string{}
