package appwrapper

import (
	"fmt"
	"strings"

	authenticationv1 "k8s.io/api/authentication/v1"
	kjson "k8s.io/apimachinery/pkg/util/json"

	"github.com/odh-platform/odh-platform-operator/apis/appwrapper/v1beta2"
	author "github.com/odh-platform/odh-platform-operator/pkg/admission"
)

// labelLength is the longest value of a label, in bytes.
const labelLength = 63

// operation is one step of a JSON patch.
type operation = author.Operation

// labelled is the part of an object that defaulting reads.
type labelled struct {
	Metadata *struct {
		Labels map[string]string `json:"labels"`
	} `json:"metadata"`
}

// labels returns the patch that gives a new object the default queue, where it names none, and the labels of its creator,
// whatever it says itself; nil when it has them. An error means that the object is no JSON object.
func labels(raw []byte, user authenticationv1.UserInfo, queue string) ([]operation, error) {
	var object labelled
	if err := kjson.Unmarshal(raw, &object); err != nil {
		return nil, fmt.Errorf("reading the labels: %w", err)
	}
	wanted := [][2]string{
		{v1beta2.LabelUser, Sanitize(user.Username)},
		{v1beta2.LabelUserID, Sanitize(user.UID)},
	}
	var have map[string]string
	if object.Metadata != nil {
		have = object.Metadata.Labels
	}
	if _, given := have[v1beta2.LabelQueue]; !given && queue != "" {
		wanted = append(wanted, [2]string{v1beta2.LabelQueue, queue})
	}
	return labelOperations(object.Metadata != nil, have, wanted), nil
}

// labelOperations sets each wanted label that is missing or different, and makes the map that they go into if need be.
func labelOperations(metadata bool, have map[string]string, wanted [][2]string) []operation {
	if have == nil {
		all := map[string]string{}
		for _, label := range wanted {
			all[label[0]] = label[1]
		}
		if !metadata {
			return []operation{{Operation: "add", Path: "/metadata", Value: map[string]any{"labels": all}}}
		}
		return []operation{{Operation: "add", Path: "/metadata/labels", Value: all}}
	}
	var patch []operation
	for _, label := range wanted {
		if value, ok := have[label[0]]; !ok || value != label[1] {
			patch = append(patch, operation{Operation: "add", Path: "/metadata/labels/" + author.Pointer(label[0]), Value: label[1]})
		}
	}
	return patch
}

// Sanitize makes a label value of a user's name or UID: cut to 63 bytes, every character that a label may not have
// replaced by "_", and "-", "_" and "." taken off both ends. Clients know the result, so it must not change.
func Sanitize(name string) string {
	if len(name) > labelLength {
		name = name[:labelLength]
	}
	var value strings.Builder
	for _, r := range name {
		switch {
		case r >= 'a' && r <= 'z', r >= 'A' && r <= 'Z', r >= '0' && r <= '9', r == '-', r == '_', r == '.':
			value.WriteRune(r)
		default:
			value.WriteByte('_')
		}
	}
	return strings.Trim(value.String(), "-_.")
}
