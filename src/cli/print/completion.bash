# bash completion for rangescope; made by `rangescope help --completion bash`
_rangescope() {{
  local current=${{COMP_WORDS[COMP_CWORD]}} before=${{COMP_WORDS[COMP_CWORD-1]}} words='' values='' i run runs=latest
  COMPREPLY=()
  for ((i = 1; i < COMP_CWORD; i++)); do
    if [[ ${{COMP_WORDS[i]}} == -- ]]; then
      compopt -o default 2>/dev/null
      return
    fi
  done
  if ((COMP_CWORD == 1)); then
    COMPREPLY=($(compgen -W "{}" -- "$current"))
    return
  fi
  for run in rangescope-runs/*/manifest.json; do
    [[ -e $run ]] && run=${{run#*/}} && runs+=" ${{run%%/*}}"
  done
  if [[ $current == = ]]; then current=''; elif [[ $before == = ]]; then before=${{COMP_WORDS[COMP_CWORD-2]}}; fi
  case "${{COMP_WORDS[1]}} $before" in
{}  esac
  if [[ -n $values ]]; then
    if [[ $current == *,* ]]; then
      COMPREPLY=($(compgen -P "${{current%,*}}," -W "$values" -- "${{current##*,}}"))
    else
      COMPREPLY=($(compgen -W "$values" -- "$current"))
    fi
    return
  fi
  case ${{COMP_WORDS[1]}} in
{}  esac
  COMPREPLY=($(compgen -W "$words" -- "$current"))
  compopt -o default 2>/dev/null
}}
complete -F _rangescope rangescope
