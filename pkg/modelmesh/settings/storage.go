package settings

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
)

// pvcType is the type of a storage entry for a PersistentVolumeClaim.
const pvcType = "pvc"

// StorageClaims returns the PersistentVolumeClaims in a storage Secret, sorted and without duplicates. Notices describe invalid entries,
// which are ignored, and contain no values of the Secret.
func StorageClaims(data map[string][]byte) (claims, notices []string) {
	for _, key := range slices.Sorted(maps.Keys(data)) {
		claim, err := parseClaim(data[key])
		switch {
		case err != nil:
			notices = append(notices, fmt.Sprintf("storage entry %s is ignored: %v", key, err))
		case claim != "":
			claims = append(claims, claim)
		}
	}
	slices.Sort(claims)
	return slices.Compact(claims), notices
}

// parseClaim returns the claim of an entry, or "" if the entry has another type. Other fields can have any type, such as the headers of
// an HTTP entry.
func parseClaim(entry []byte) (string, error) {
	var fields map[string]json.RawMessage
	if json.Unmarshal(entry, &fields) != nil || fields == nil {
		return "", fmt.Errorf("it must be a JSON object") // the error of the decoder quotes values
	}
	if stringField(fields, "type") != pvcType {
		return "", nil
	}
	name := stringField(fields, "name")
	if name == "" {
		return "", fmt.Errorf("it is of type %s and names no claim: set name to the name of a PersistentVolumeClaim", pvcType)
	}
	if !isName(name) {
		return "", fmt.Errorf("its name must be that of a PersistentVolumeClaim: at most 253 of a-z, 0-9, - and ., letters or digits at both ends")
	}
	return name, nil
}

// stringField returns a string field, or "" if it is unset or has another type.
func stringField(fields map[string]json.RawMessage, name string) string {
	var text string
	if json.Unmarshal(fields[name], &text) != nil {
		return ""
	}
	return text
}
