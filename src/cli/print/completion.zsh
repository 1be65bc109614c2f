#compdef rangescope
# zsh completion for rangescope; made by `rangescope help --completion zsh`
_rangescope() {{
  if (( CURRENT == 2 )); then
    local -a commands=(
{}    )
    _describe command commands
    return
  fi
  local runs="latest ${{(j: :)${{(@)${{(@f)$(print -l rangescope-runs/*(N/))}}:t}}}}"
  shift words
  (( CURRENT-- ))
  case $words[1] in
{}  esac
}}
if [[ $funcstack[1] == _rangescope ]]; then _rangescope "$@"; else compdef _rangescope rangescope; fi
