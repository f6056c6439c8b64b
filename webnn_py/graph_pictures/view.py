"""A picture within a page or a notebook: as wide as there is room, and by a click in its own size."""

from __future__ import annotations

from typing import Final

STYLE: Final = """
.webnn-view{{display:block;container-type:inline-size;font:12px sans-serif}}
.webnn-view label{{display:block}}
.webnn-view .size{{display:none}}
.webnn-view .pane{{display:block;max-height:80vh;overflow:auto}}
.webnn-view svg{{display:block;width:100%;max-width:var(--own);height:auto}}
.webnn-view .size:has(:checked)~.pane svg{{width:var(--own)}}
@container (max-width:{limit}px){{
.webnn-view.webnn-{width} .size{{display:block}}
.webnn-view.webnn-{width} svg{{cursor:zoom-in}}
.webnn-view.webnn-{width} .size:has(:checked)~.pane svg{{cursor:zoom-out}}
}}
"""

FOLLOW: Final = (
    "if(event.target.tagName!='INPUT'){const pane=this.querySelector('.pane'),"
    "at=pane.firstElementChild.getBoundingClientRect(),"
    "x=(event.clientX-at.left)/at.width,y=(event.clientY-at.top)/at.height;"
    "requestAnimationFrame(()=>pane.scrollTo(x*pane.scrollWidth-pane.clientWidth/2,"
    "y*pane.scrollHeight-pane.clientHeight/2))}"
)
"""What was clicked at is in the middle afterwards. Where a notebook runs no script, the size changes all the same."""


def to_view(svg: str, width: int) -> str:
    """Return the HTML of a picture; where its width does not fit, a check box or a click shows it unscaled."""
    style = STYLE.format(width=width, limit=width - 1)
    return (
        f'<div class="webnn-view webnn-{width}" style="--own:{width}px"><style>{style}</style>'
        f'<label onclick="{FOLLOW}"><span class="size"><input type="checkbox"> in its own size, to be scrolled</span>\n'
        f'<span class="pane">{svg}</span></label></div>'
    )
