package huggingface

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"regexp"
	"strings"

	"github.com/odh-platform/odh-platform-operator/controllers/modelcatalog/resources"
)

// maxKeys bounds the variables of the server.
const maxKeys = 50

// sourcePattern is what can stand in the name of a variable.
var sourcePattern = regexp.MustCompile(`^[A-Za-z0-9_]+$`)

// Verdict is what becomes of the labelled Secrets of a namespace.
type Verdict struct {
	// Keys are the variables of the server, in the order of the names of their Secrets.
	Keys []resources.HubKey
	// Hash changes with every key; empty without any.
	Hash string
	// Problems name the Secrets that are of no use, with cause and fix.
	Problems []string
}

// judge decides which Secrets the server gets. They come ordered by name, and of two with the same variable the first one counts.
func judge(secrets []secret) Verdict {
	var v Verdict
	of, sum := map[string]string{}, sha256.New()
	for _, s := range secrets {
		variable := "HF_API_KEY_" + strings.ToUpper(s.source)
		problem := ""
		switch {
		case !sourcePattern.MatchString(s.source):
			problem = fmt.Sprintf("its label %s is %q, and may have letters, digits and underscores only; change it", Label, s.source)
		case s.hash == "":
			problem = "it has no key " + Key + "; add it, or take the label " + Label + " away"
		case of[variable] != "":
			problem = fmt.Sprintf("%s comes from Secret %s already; give its label %s another value", variable, of[variable], Label)
		case len(v.Keys) == maxKeys:
			problem = fmt.Sprintf("there are %d keys before it, and no more are taken; remove some", maxKeys)
		}
		if problem != "" {
			v.Problems = append(v.Problems, "Secret "+s.name+": "+problem)
			continue
		}
		of[variable] = s.name
		v.Keys = append(v.Keys, resources.HubKey{Variable: variable, Secret: s.name, Key: Key})
		fmt.Fprintf(sum, "%s %s %s\n", variable, s.name, s.hash)
	}
	if len(v.Keys) > 0 {
		v.Hash = hex.EncodeToString(sum.Sum(nil)[:16])
	}
	return v
}
