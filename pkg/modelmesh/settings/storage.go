package settings

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
)

// claimType is the type of a storage entry that is a claim.
const pvcType = "pvc"

// StorageClaims returns the names of the claims that the Secret of storage entries lists, ordered, each once. Notices say which
// entries cannot be read: they are left out, and do not affect the other entries. No notice has a value of the Secret in it.
func StorageClaims(data map[string][]byte) (claims, notices []string) {
	for _, key := range slices.Sorted(maps.Keys(data)) {
		claim, err := parseClaim(data[key])
		switch {
		case err != nil:
			notices = append(notices, fmt.Sprintf("storage entry %s is left out: %v", key, err))
		case claim != "":
			claims = append(claims, claim)
		}
	}
	slices.Sort(claims)
	return slices.Compact(claims), notices
}

// claimOf returns the claim of an entry, "" where it is of another type. Other members may be of any shape, such as the headers
// of an entry for HTTP.
func parseClaim(entry []byte) (string, error) {
	var members map[string]json.RawMessage // a fresh one: members of one entry say nothing about the next
	if json.Unmarshal(entry, &members) != nil || members == nil {
		return "", fmt.Errorf("it must be a JSON object") // the decoder's words quote what it met
	}
	if stringMember(members, "type") != pvcType {
		return "", nil
	}
	name := stringMember(members, "name")
	if name == "" {
		return "", fmt.Errorf("it is of type %s and names no claim: set its name to that of a PersistentVolumeClaim", pvcType)
	}
	if !isName(name) {
		return "", fmt.Errorf("its name is not that of a PersistentVolumeClaim: at most 253 of a-z, 0-9, - and ., letters or digits at both ends")
	}
	return name, nil
}

// member is a string member; "" where there is none, or it is of another type.
func stringMember(members map[string]json.RawMessage, name string) string {
	var text string
	if json.Unmarshal(members[name], &text) != nil {
		return ""
	}
	return text
}
