// The JSON lines that a scenario prints, from whichever goroutine.

package main

import (
	"bufio"
	"encoding/json"
	"os"
	"sync"
)

var output struct {
	sync.Mutex
	lines bufio.Writer
}

func init() { output.lines.Reset(os.Stdout) }

func printLine(line any) {
	text, err := json.Marshal(line)
	if err != nil {
		panic(err)
	}
	output.Lock()
	defer output.Unlock()
	output.lines.Write(append(text, '\n'))
}

func flushLines() {
	output.Lock()
	defer output.Unlock()
	output.lines.Flush()
}
